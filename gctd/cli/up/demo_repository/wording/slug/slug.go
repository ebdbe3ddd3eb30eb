// Package slug makes names for URLs.
package slug

import "strings"

// Make is a text in small letters, with one hyphen for whatever is not a letter or a digit.
func Make(text string) string {
	var out strings.Builder
	gap := false
	for _, r := range strings.ToLower(text) {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			if gap && out.Len() > 0 {
				out.WriteByte('-')
			}
			gap = false
			out.WriteRune(r)
			continue
		}
		gap = true
	}
	return out.String()
}
