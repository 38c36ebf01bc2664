import type { Call } from './call.ts'
import type { Group } from './group.ts'

/** Where weighted groups go. */
export interface Sink extends AsyncDisposable {
  readonly name: string
  write(group: Group, call: Call): Promise<void>
}
