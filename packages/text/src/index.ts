export {
  type AssistantMessage,
  type CallAttempt,
  type Content,
  type ContentPart,
  type Message,
  type Reply,
  type ToolCall,
  type ToolDefinition,
  type ToolMessage,
  textOf,
} from './message.ts'
export type { Bridge, History, Renderer, TurnPiece } from './renderer.ts'
