// The pantry API's answers (pantry/http/bodies.py).

export interface Product {
  ean13: string;
  name: string;
  description: string;
  unit: string;
  min_stock: number;
  current_stock: number;
  active: boolean;
  category_id?: string;
}

export interface Category {
  id: string;
  name: string;
  description: string;
}

/** A code that names a product; `factor` is the quantity that the code stands for. */
export interface Barcode {
  code: string;
  product_ean13: string;
  factor: number;
}

export type Direction = "in" | "out";

export interface Movement {
  id: string;
  product_ean13: string;
  type: Direction;
  quantity: number;
  created_by?: string;
  notes?: string;
  created_at: string;
  stock_after: number;
  /** The unit that it was booked in. */
  unit: string;
  /** The movement that this one undoes. */
  reverses?: string;
  /** The movement that undid this one. */
  reversed_by?: string;
  /** The quantity that a stocktake found. */
  counted?: number;
}
