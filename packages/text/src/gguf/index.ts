export { ggufCutOf, ggufModelFiles } from './files.ts'
export {
  type Fact,
  type GgufHeader,
  isGgufPath,
  readGgufHeader,
  type StoredTensor,
} from './metadata.ts'
