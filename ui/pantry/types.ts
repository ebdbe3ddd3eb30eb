// The pantry API's answers (pantry/http/bodies.py).

export interface Product {
  ean13: string;
  name: string;
  description: string;
  unit: string;
  min_stock: number;
  current_stock: number;
  active: boolean;
}

export type Direction = "in" | "out";

export interface Movement {
  id: string;
  product_ean13: string;
  type: Direction;
  quantity: number;
  created_by?: string;
  created_at: string;
  stock_after: number;
  /** The movement that this one undoes. */
  reverses?: string;
  /** The movement that undid this one. */
  reversed_by?: string;
  /** What a stocktake found. */
  counted?: number;
}
