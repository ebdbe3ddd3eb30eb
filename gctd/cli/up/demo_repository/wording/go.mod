module demo.example/wording

go 1.21
