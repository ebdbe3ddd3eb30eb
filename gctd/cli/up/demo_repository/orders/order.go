// Package orders takes orders.
package orders

import (
	"errors"

	"demo.example/orders/pricing"
	"demo.example/wording/slug"
)

// Line is one article of an order; the price is in cents.
type Line struct {
	Title    string
	Quantity int
	Price    int
}

// Order is a list of lines for one customer.
type Order struct {
	Customer string
	Lines    []Line
	Coupon   string
	Express  bool
}

// Reference names an order in a URL.
func (o Order) Reference() string {
	return slug.Make(o.Customer)
}

// Total is what the order costs, in cents.
func (o Order) Total() int {
	sum := 0
	for _, line := range o.Lines {
		sum += pricing.Line(line.Quantity, line.Price)
	}
	return sum - pricing.Discount(sum, o.Coupon, len(o.Lines))
}

// Check says what is wrong with an order. No test looks at it.
func (o Order) Check() error {
	if o.Customer == "" {
		return errors.New("no customer")
	}
	if len(o.Lines) == 0 {
		return errors.New("nothing ordered")
	}
	seen := map[string]bool{}
	for _, line := range o.Lines {
		switch {
		case line.Title == "":
			return errors.New("an article without a title")
		case line.Quantity <= 0:
			return errors.New("a quantity that is not positive")
		case line.Price < 0 || line.Price > 1_000_000:
			return errors.New("a price that cannot be right")
		case seen[line.Title]:
			return errors.New("an article twice")
		}
		seen[line.Title] = true
	}
	if o.Express && len(o.Lines) > 10 {
		return errors.New("too much for express delivery")
	}
	return nil
}
