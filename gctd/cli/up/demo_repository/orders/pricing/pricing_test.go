package pricing

import "testing"

func TestDiscount(t *testing.T) {
	for _, c := range []struct {
		sum    int
		coupon string
		lines  int
		want   int
	}{
		{1000, "", 1, 0},
		{1000, "WELCOME", 1, 100},
		{5000, "FIVE", 2, 500},
		{2000, "FIVE", 2, 0},
	} {
		if got := Discount(c.sum, c.coupon, c.lines); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestLine(t *testing.T) {
	if Line(3, 7) != 21 {
		t.Error("3 times 7")
	}
}
