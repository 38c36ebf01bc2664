// espalier/tokens: the border between messages and tokens, and the trees that hold them.

import './offers.ts'

export type {
  AssistantMessage,
  CallAttempt,
  Content,
  ContentPart,
  History,
  Renderer,
  Reply,
  ToolCall,
  ToolDefinition,
  ToolMessage,
} from '@espalier/text'
export type { ModelRenderer } from '@espalier/text/chat'
export {
  type OutputParser,
  openParser,
  reasoningFormats,
  toolFormats,
} from '@espalier/text/parsers'
export { openTokenizer, type Tokenizer } from '@espalier/text/tokenizers'
export type { GroupId, TrajectoryId, TreeId } from './base/core/ids.ts'
export type { Fidelity } from './base/core/trajectory.ts'
export { idsTo, pathTo, type Tree } from './base/core/tree.ts'
export { openRenderer } from './run/settings/model-source.ts'
