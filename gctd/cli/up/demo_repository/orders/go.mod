module demo.example/orders

go 1.21
