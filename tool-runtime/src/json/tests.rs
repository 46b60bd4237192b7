//! Cases of the parser, the tree, deserialising and canonical text.
