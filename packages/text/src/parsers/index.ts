export {
  type OutputParser,
  openParser,
  type ReasoningFormat,
  reasoningFormats,
  type ToolFormat,
  toolFormats,
} from './parser.ts'
