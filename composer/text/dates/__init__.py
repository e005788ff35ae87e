"""Words of time, each kind of reader in a file of its own, all over the English words of `vocabulary`.

- `periods`: the exact periods that a question asks for, which a search is bound to.
- `meant`: the periods that any text means, seen from when it was said, over or to come.
- `named_days`: the days near which a question asks, with a margin, which ranking prefers.
- `deadlines`: until when a statement holds.
- `repeats`: the days and the hour at which something repeats.
- `clock`: a time of day.
- `tongues`: words of time of other languages, and dates in numbers, told in English before they are read.
- `when`: the time with which a text begins or ends, which is to come (`read_when`) or over (`read_since`).
- `named`: a day or a time that stands alone, after an option such as `--since`.
"""
