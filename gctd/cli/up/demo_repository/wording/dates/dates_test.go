package dates

import "testing"

func TestReadWhatWasWritten(t *testing.T) {
	style := Style{DayFirst: true}
	text := style.Write(2024, 2, 29)
	if text != "29.2.2024" {
		t.Error(text)
	}
	year, month, day, err := style.Read(text)
	if err != nil || year != 2024 || month != 2 || day != 29 {
		t.Error(year, month, day, err)
	}
}
