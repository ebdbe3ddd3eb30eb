package orders

import "testing"

func TestCheck(t *testing.T) {
	for problem, change := range map[string]func(*Order){
		"":                                func(*Order) {},
		"no customer":                     func(o *Order) { o.Customer = "" },
		"nothing ordered":                 func(o *Order) { o.Lines = nil },
		"an article without a title":      func(o *Order) { o.Lines[0].Title = "" },
		"a quantity that is not positive": func(o *Order) { o.Lines[0].Quantity = 0 },
		"a price that cannot be right":    func(o *Order) { o.Lines[0].Price = -1 },
		"an article twice":                func(o *Order) { o.Lines[1] = o.Lines[0] },
		"too much for express delivery":   func(o *Order) { o.Express = true },
	} {
		order := Order{Customer: "Ada Lovelace"}
		for _, title := range []string{"A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K"} {
			order.Lines = append(order.Lines, Line{title, 1, 100})
		}
		change(&order)
		if err := order.Check(); (err == nil) != (problem == "") || err != nil && err.Error() != problem {
			t.Errorf("%v, not %q", err, problem)
		}
	}
}
