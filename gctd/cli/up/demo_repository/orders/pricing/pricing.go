// Package pricing says what things cost, in cents.
package pricing

// Line is the price of some pieces of one article.
func Line(quantity, price int) int {
	return quantity * price
}

// Discount is what is taken off a sum. Half of its rules are tested.
func Discount(sum int, coupon string, lines int) int {
	discount := 0
	switch coupon {
	case "":
	case "WELCOME":
		discount = sum / 10
	case "HALF":
		discount = sum / 2
	case "FIVE":
		if sum >= 2500 {
			discount = 500
		}
	default:
		if len(coupon) == 8 && coupon[0] == 'P' {
			discount = sum / 20
		}
	}
	if lines > 5 && discount < sum/8 {
		discount = sum / 8
	}
	if discount > 10_000 {
		discount = 10_000
	}
	return discount
}
