export { fromBytes } from './byte-level/byte-alphabet.ts'
export { openTokenizer, type Tokenizer } from './tokenizer.ts'
