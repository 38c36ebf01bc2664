export type { ImageConfigs } from './config.ts'
export { type ImageHeader, type ImageKind, readImageHeader } from './header.ts'
export {
  countTokens,
  type ImageLayout,
  type ImageProcessor,
  ImageRefusedError,
  type ImageSize,
  layoutText,
  type TokenRun,
} from './layout.ts'
export { imageProcessor, imageProcessors } from './processor.ts'
export {
  dataUrlBytes,
  formatReference,
  type ImageFacts,
  parseReference,
  sizeAt,
} from './reference.ts'
