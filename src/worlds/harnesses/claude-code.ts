import { z } from 'zod'
import { late } from '../../engine/environments/late.ts'
import type { Ended, Harness } from './contract.ts'
import { lastJson } from './printed.ts'

const result = late(() =>
  z.object({
    type: z.literal('result'),
    is_error: z.boolean(),
    result: z.string().optional(),
    num_turns: z.number().optional(),
  }),
)

const read = ({ output }: Ended) => lastJson(output, result())

/** Anthropic's Claude Code, without a terminal. */
export const claudeCode: Harness = {
  name: 'claude-code',
  install: { program: 'claude', from: { npm: '@anthropic-ai/claude-code' } },
  environment: ({ model }) => ({
    ANTHROPIC_MODEL: model,
    // Titles, summaries and sub-agents ask for models of their own, which are not there.
    ANTHROPIC_SMALL_FAST_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
    ANTHROPIC_DEFAULT_SONNET_MODEL: model,
    ANTHROPIC_DEFAULT_OPUS_MODEL: model,
    CLAUDE_CODE_SUBAGENT_MODEL: model,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
    // It asks nobody for permission as root only if it is told that it is walled in.
    IS_SANDBOX: '1',
  }),
  start: ({ prompt, model }) => ({
    words: [
      ...['--print', '--output-format', 'json', '--model', model],
      '--dangerously-skip-permissions',
    ],
    input: prompt,
  }),
  isDone: ended => ended.code === 0 && read(ended)?.is_error === false,
  report: ended => ({ answer: read(ended)?.result ?? '', turns: read(ended)?.num_turns ?? 0 }),
}
