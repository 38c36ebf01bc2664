import { z } from 'zod'
import { late } from '../../engine/environments/late.ts'
import type { Ended, Harness } from './contract.ts'
import { jsonIn } from './printed.ts'

const trajectory = late(() =>
  z.object({ info: z.object({ exit_status: z.string(), submission: z.string().nullish() }) }),
)

const read = ({ result = '' }: Ended) => jsonIn(result, trajectory())?.info

/** mini-SWE-agent, whose only tool is a shell. */
export const miniSweAgent: Harness = {
  name: 'mini-swe-agent',
  // The client library that it asks with does not start without mcp, and does not ask for it.
  install: { program: 'mini', from: { pip: ['mini-swe-agent', 'mcp'] } },
  environment: ({ url }) => ({
    OPENAI_API_BASE: `${url}/v1`,
    MSWEA_CONFIGURED: 'true',
    MSWEA_COST_TRACKING: 'ignore_errors',
    MSWEA_GLOBAL_CONFIG_DIR: '/tmp/mini',
    // Its list of prices lies in the package too.
    LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  }),
  start: ({ prompt, model }) => ({
    words: [
      ...['--model', `openai/${model}`, '--task', prompt, '--yolo', '--exit-immediately'],
      ...['--cost-limit', '0', '--output', '/tmp/mini.json'],
    ],
    result: '/tmp/mini.json',
  }),
  isDone: ended => ended.code === 0 && read(ended)?.exit_status === 'Submitted',
  report: ended => ({ answer: read(ended)?.submission ?? '' }),
}
