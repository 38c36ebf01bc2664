import type { Harness } from './contract.ts'
import { openCodeConfig } from './opencode.ts'

/** Whatever speaks the Agent Client Protocol; its command line is its program. */
export const acp: Omit<Harness, 'install'> = {
  name: 'acp',
  // OpenCode, which speaks it too, reads its model from nowhere else.
  environment: assignment => ({ OPENCODE_CONFIG_CONTENT: openCodeConfig(assignment) }),
  start: () => ({ words: [], speaks: 'acp' }),
  isDone: ({ said }) => said !== undefined && said.stop !== 'cancelled',
  report: ({ said }) => ({ answer: said?.answer ?? '', stop: said?.stop ?? '' }),
}
