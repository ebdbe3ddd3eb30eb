// Package shipping has no tests at all.
package shipping

// Days is how long a parcel takes.
func Days(country string, grams int, express bool) int {
	days := 3
	switch country {
	case "DE", "AT":
		days = 2
	case "FR", "NL", "BE", "LU":
		days = 4
	case "US", "CA":
		days = 9
	case "AU", "NZ":
		days = 12
	}
	if grams > 30_000 {
		days += 5
	} else if grams > 10_000 {
		days += 2
	}
	if express && days > 1 {
		days = (days + 1) / 2
	}
	return days
}

// Name is what a parcel service is called.
func Name() string { return "Pigeon" }
