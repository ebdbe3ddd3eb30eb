// The input of the compiler: a list of a list, paged by the global id of its owner.
import { graphql } from "relay-runtime";

export const query = graphql`
  query categoryQuery {
    categories(first: 1) {
      nodes {
        id
        ...category_products
      }
    }
  }
`;

export const fragment = graphql`
  fragment category_products on Category
  @refetchable(queryName: "categoryPaginationQuery")
  @argumentDefinitions(count: { type: "Int", defaultValue: 2 }, cursor: { type: "String" }) {
    name
    products(first: $count, after: $cursor) @connection(key: "category_products") {
      edges {
        node {
          name
          quantity
        }
      }
    }
  }
`;
