import type { ReasoningFormat } from './reasoning-formats.ts'
import type { ToolFormat } from './tool-formats.ts'

/** Which formats a chat template speaks, found from its source and control tokens. */
export function detectFormats(
  _template: string,
  _controls: readonly string[],
): { tools: ToolFormat | undefined; reasoning: ReasoningFormat | undefined } {
  return { tools: undefined, reasoning: undefined }
}
