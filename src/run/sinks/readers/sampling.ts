import type { Fields } from '../fields.ts'
import type { ReadTrajectory } from '../reader.ts'

/** How a trajectory was sampled, from our own records. */
export function samplingIn(record: Fields): Pick<ReadTrajectory, 'sampling' | 'seed'> {
  const sampling = record.inner('sampling')
  return {
    sampling: {
      temperature: sampling.number('temperature'),
      topP: sampling.number('topP'),
      topK: sampling.number('topK'),
      minP: sampling.number('minP'),
    },
    seed: sampling.number('seed'),
  }
}
