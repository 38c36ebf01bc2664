import type { Environment } from '../../base/core/environment.ts'

/** The environment of agents that run elsewhere: any data is a task, and rewards come from them. */
export const elsewhere: Environment = {
  name: 'elsewhere',
  readTask: data => data,
  open: async () => {
    throw new Error('agents behind a gateway have their world themselves; nothing can be opened')
  },
  reward: {},
}
