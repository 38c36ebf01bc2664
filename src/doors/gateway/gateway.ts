import type { Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import type { Attempts } from './attempts.ts'
import type { Secrets } from './secrets.ts'

/** What the routes of a gateway share. */
export interface Gateway {
  readonly attempts: Attempts
  readonly secrets: Secrets
  /** A task by its id, with the data that was sent, or else the known data. */
  readonly readTask: (id: TaskId, data?: unknown) => Task
  /** The name of the model that is listed. */
  readonly model: string
  /** What is known of an answer's tokens: the exact ones, or only the text. */
  readonly capture: 'tokens' | 'text'
  readonly decode: (id: number) => string
}
