import { z } from 'zod'
import { late } from '../../engine/environments/late.ts'
import { compactAt, type Ended, type Harness } from './contract.ts'
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

/** It knows no window below this; the share of it may be any. */
const leastWindow = 100_000

const compacting = (context: number) => ({
  CLAUDE_CODE_AUTO_COMPACT_WINDOW: String(Math.max(context, leastWindow)),
  CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: String(
    (100 * compactAt * context) / Math.max(context, leastWindow),
  ),
})

/** Anthropic's Claude Code, without a terminal. */
export const claudeCode: Harness = {
  name: 'claude-code',
  install: { program: 'claude', from: { npm: '@anthropic-ai/claude-code' } },
  environment: ({ model, context }) => ({
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
    ...(context !== undefined && compacting(context)),
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
