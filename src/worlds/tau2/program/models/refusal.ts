import { nameOf } from '../operators.ts'
import { repr } from '../show.ts'
import { PythonError, type Value } from '../values.ts'

/** A problem of a value, as pydantic reports it. */
export interface Problem {
  /** The way from the model to the value. */
  readonly where: readonly string[]
  readonly type: string
  readonly message: string
  readonly input: Value
}

/** Why a value was not taken. */
export class Refusal {
  readonly problems: readonly Problem[]
  constructor(problems: readonly Problem[]) {
    this.problems = problems
  }

  /** The refusal as seen from one step further out. */
  at(step: string): Refusal {
    return new Refusal(
      this.problems.map(problem => ({ ...problem, where: [step, ...problem.where] })),
    )
  }
}

/** A refusal for one reason. */
export const refuse = (type: string, message: string, input: Value): Refusal =>
  new Refusal([{ where: [], type, message, input }])

/** The version of pydantic whose words these are. */
const VERSION = '2.12'

/** The error that a model of that name raises, in pydantic's words. */
export function validationError(model: string, { problems }: Refusal): PythonError {
  const noun = problems.length === 1 ? 'error' : 'errors'
  const lines = problems.map(({ where, type, message, input }) =>
    [
      ...(where.length > 0 ? [where.join('.')] : []),
      `  ${message} [type=${type}, input_value=${shortened(repr(input))}, input_type=${nameOf(input)}]`,
      `    For further information visit https://errors.pydantic.dev/${VERSION}/v/${type}`,
    ].join('\n'),
  )
  const head = `${problems.length} validation ${noun} for ${model}`
  return new PythonError('ValidationError', [head, ...lines].join('\n'))
}

/** At most 50 characters, the middle left out. */
function shortened(text: string): string {
  const characters = [...text]
  if (characters.length <= 50) return text
  return `${characters.slice(0, 25).join('')}...${characters.slice(-24).join('')}`
}
