export { fromBytes } from './byte-level/byte-alphabet.ts'
export {
  type ControlToken,
  type DecodeOptions,
  type EncodeOptions,
  type MarkedText,
  openTokenizer,
  type StreamDecoder,
  type Tokenizer,
  type TokenizerFiles,
} from './tokenizer.ts'
