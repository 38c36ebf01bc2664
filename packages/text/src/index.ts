export {
  type AssistantMessage,
  type CallAttempt,
  type Content,
  type ContentPart,
  type ImagePart,
  imagesIn,
  type Message,
  type Reply,
  type ToolCall,
  type ToolDefinition,
  type ToolMessage,
  textOf,
} from './message.ts'
export type {
  Bridge,
  History,
  ImageRange,
  Renderer,
  RendererImages,
  TurnPiece,
} from './renderer.ts'
