package slug

import "testing"

func TestMake(t *testing.T) {
	for text, want := range map[string]string{"Ada Lovelace": "ada-lovelace", "  A -- 1!": "a-1", "": ""} {
		if got := Make(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
