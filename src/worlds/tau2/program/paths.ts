import { ProgramObject } from './values.ts'

/** A path of a file, joined by `/`. */
export class ProgramPath extends ProgramObject {
  readonly text: string
  constructor(text: string) {
    super()
    this.text = text
  }
  get type(): string {
    return 'PosixPath'
  }
}
