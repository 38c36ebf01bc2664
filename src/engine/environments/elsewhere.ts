import type { Environment } from '../../base/core/environment.ts'

/** The environment of attempts that are made elsewhere: any data is a task, and rewards come with them. */
export const elsewhere: Environment = {
  name: 'elsewhere',
  readTask: data => data,
  open: async () => {
    throw new Error(
      'attempts that are made elsewhere have their world there; none can be opened here',
    )
  },
  reward: {},
}
