import { z } from 'zod'
import { late } from '../../engine/environments/late.ts'
import { compactAt, type Harness } from './contract.ts'
import { lastJson } from './printed.ts'

const events = late(() => ({
  message: z.object({
    type: z.literal('item.completed'),
    item: z.object({ type: z.literal('agent_message'), text: z.string() }),
  }),
  over: z.object({ type: z.literal('turn.completed') }),
}))

/** OpenAI's Codex, without a terminal. */
export const codex: Harness = {
  name: 'codex',
  install: { program: 'codex', from: { npm: '@openai/codex' } },
  environment: () => ({}),
  start: ({ prompt, model, url, context }) => {
    const provider = {
      name: 'Espalier',
      base_url: `${url}/v1`,
      env_key: 'OPENAI_API_KEY',
      wire_api: 'responses',
    }
    const settings = Object.entries(provider).flatMap(([key, value]) => [
      '--config',
      `model_providers.espalier.${key}=${JSON.stringify(value)}`,
    ])
    const limit =
      context === undefined
        ? []
        : [
            ...['--config', `model_context_window=${context}`],
            ...['--config', `model_auto_compact_token_limit=${Math.floor(compactAt * context)}`],
          ]
    return {
      words: [
        ...['exec', '--json', '--skip-git-repo-check', '--model', model],
        // The walls of the sandbox are around it already.
        '--dangerously-bypass-approvals-and-sandbox',
        // Tools that OpenAI's own servers run, and groups of tools, which no chat template writes.
        ...['--config', 'web_search="disabled"', '--disable', 'multi_agent'],
        ...['--config', 'model_provider="espalier"', ...settings, ...limit, '-'],
      ],
      input: prompt,
    }
  },
  isDone: ({ code, output }) => code === 0 && lastJson(output, events().over) !== undefined,
  report: ({ output }) => ({ answer: lastJson(output, events().message)?.item.text ?? '' }),
}
