// Package dates writes and reads dates as people do.
package dates

import (
	"fmt"
	"strconv"
	"strings"
)

// Style is how dates are written somewhere.
type Style struct {
	DayFirst bool
	Short    bool
}

// Write is a date in this style.
func (s Style) Write(year, month, day int) string {
	if s.Short {
		year %= 100
	}
	if s.DayFirst {
		return fmt.Sprintf("%d.%d.%02d", day, month, year)
	}
	return fmt.Sprintf("%d/%d/%02d", month, day, year)
}

// Read is the date in a text; only its happy path is tested.
func (s *Style) Read(text string) (year, month, day int, err error) {
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == '.' || r == '/' || r == '-' })
	if len(parts) != 3 {
		return 0, 0, 0, fmt.Errorf("%q is not a date", text)
	}
	numbers := [3]int{}
	for i, part := range parts {
		if numbers[i], err = strconv.Atoi(part); err != nil || numbers[i] < 0 {
			return 0, 0, 0, fmt.Errorf("%q is not a number", part)
		}
	}
	if s.DayFirst {
		day, month, year = numbers[0], numbers[1], numbers[2]
	} else {
		month, day, year = numbers[0], numbers[1], numbers[2]
	}
	if year < 100 {
		if year < 70 {
			year += 2000
		} else {
			year += 1900
		}
	}
	if month < 1 || month > 12 || day < 1 || day > 31 {
		return 0, 0, 0, fmt.Errorf("%q is no day", text)
	}
	if (month == 4 || month == 6 || month == 9 || month == 11) && day > 30 {
		return 0, 0, 0, fmt.Errorf("%q is no day", text)
	}
	return year, month, day, nil
}
