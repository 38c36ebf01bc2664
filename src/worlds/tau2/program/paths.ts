import { ProgramObject } from './values.ts'

/** A path of a file, joined by `/`. */
export class ProgramPath extends ProgramObject {
  readonly type = 'PosixPath'
  readonly text: string
  constructor(text: string) {
    super()
    this.text = text
  }
}
