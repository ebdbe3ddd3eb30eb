package orders

import "testing"

func TestTotal(t *testing.T) {
	order := Order{Customer: "Ada Lovelace", Lines: []Line{{"Notes", 2, 1500}, {"Engine", 1, 9900}}}
	if got := order.Total(); got != 12900 {
		t.Errorf("total is %d", got)
	}
	if got := order.Reference(); got != "ada-lovelace" {
		t.Errorf("reference is %q", got)
	}
}
