import { readAnthropic, readAnthropicPrompt } from './anthropic-read.ts'
import { anthropicProblem, streamAnthropic, writeAnthropic } from './anthropic-write.ts'
import type { Dialect } from './dialect.ts'

/** Anthropic's Messages. */
export const anthropic: Dialect = {
  name: 'anthropic',
  read: readAnthropic,
  write: writeAnthropic,
  openStream: streamAnthropic,
  counting: { read: readAnthropicPrompt, write: tokens => ({ input_tokens: tokens }) },
  problem: anthropicProblem,
}
