"""Requests and answers: fields, decoding, binding, encoding, schemas, the OpenAPI document."""
