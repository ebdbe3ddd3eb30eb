// The reference that the tests hold the Python analysis against: go/parser's own view of each function.
//
// Reads file names from standard input, writes one JSON object per file: whether go/parser accepts it, its package, and
// for each function name, receiver kind, lines, complexity and whether an ignore directive stands in its doc comment.
package main

import (
	"bufio"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
)

type function struct {
	Name       string
	Method     bool
	Line       int
	EndLine    int
	EndColumn  int
	Column     int
	Printed    string
	PrintedAt  int
	Complexity int
	Ignored    bool
	Body       bool
}

type file struct {
	Path      string
	Error     string
	Package   string
	Functions []function
}

func decisions(root ast.Node) int {
	count := 0
	ast.Inspect(root, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			count++
		case *ast.CaseClause:
			if node.List != nil {
				count++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				count++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				count++
			}
		}
		return true
	})
	return count
}

func ignored(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, comment := range doc.List {
		switch strings.TrimSpace(comment.Text) {
		case "//go-crap:ignore", "//gocyclo:ignore":
			return true
		}
	}
	return false
}

func read(path string) file {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.AllErrors)
	if err != nil {
		return file{Path: path, Error: err.Error()}
	}
	result := file{Path: path, Package: parsed.Name.Name}
	for _, declaration := range parsed.Decls {
		decl, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		start, end := set.PositionFor(decl.Pos(), false), set.PositionFor(decl.End(), false)
		printed := set.Position(decl.Pos())
		result.Functions = append(result.Functions, function{
			Name: decl.Name.Name, Method: decl.Recv.NumFields() > 0, Line: start.Line, Column: start.Column,
			EndLine: end.Line, EndColumn: end.Column, Printed: printed.Filename, PrintedAt: printed.Line,
			Complexity: 1 + decisions(decl), Ignored: ignored(decl.Doc), Body: decl.Body != nil,
		})
	}
	return result
}

func main() {
	output := json.NewEncoder(os.Stdout)
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		if err := output.Encode(read(input.Text())); err != nil {
			panic(err)
		}
	}
}
