import { z } from 'zod'
import { late } from '../../engine/environments/late.ts'
import { type Assignment, compactAt, type Harness } from './contract.ts'
import { lastJson } from './printed.ts'

const text = late(() => z.object({ type: z.literal('text'), part: z.object({ text: z.string() }) }))

/** It compacts a conversation that leaves no room for an answer. */
const compacting = (context: number) => ({
  limit: { context, output: Math.floor((1 - compactAt) * context) },
})

/** What OpenCode has to know of a model that no registry lists. */
export function openCodeConfig({ model, url, token, context }: Assignment): string {
  const name = `espalier/${model}`
  return JSON.stringify({
    provider: {
      espalier: {
        npm: '@ai-sdk/openai-compatible',
        options: { baseURL: `${url}/v1`, apiKey: token },
        models: { [model]: { name: model, ...(context !== undefined && compacting(context)) } },
      },
    },
    model: name,
    small_model: name,
    autoupdate: false,
    share: 'disabled',
    permission: 'allow',
  })
}

/** OpenCode, without a terminal. */
export const openCode: Harness = {
  name: 'opencode',
  install: { program: 'opencode', from: { npm: 'opencode-ai' } },
  environment: assignment => ({
    OPENCODE_CONFIG_CONTENT: openCodeConfig(assignment),
    OPENCODE_DISABLE_MODELS_FETCH: '1',
  }),
  start: ({ prompt, model }) => ({
    words: ['run', '--format', 'json', '--model', `espalier/${model}`],
    input: prompt,
  }),
  isDone: ({ code }) => code === 0,
  report: ({ output }) => ({ answer: lastJson(output, text())?.part.text ?? '' }),
}
