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
  writeModels(name, created, isOne) {
    const created_at = new Date(created * 1000).toISOString()
    const one = { type: 'model', id: name, display_name: name, created_at }
    return isOne ? one : { data: [one], has_more: false, first_id: name, last_id: name }
  },
}
