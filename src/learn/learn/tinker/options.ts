import { didYouMean } from '../../../base/core/names/nearest.ts'
import { SettingError } from '../../../base/core/names/setting-error.ts'
import type { LeafWeighting } from '../../../base/math/credit.ts'
import type { TinkerTarget } from '../../../engine/policies/tinker/model.ts'
import type { FactorOptions } from '../row-factors.ts'

/** How a model behind a Tinker server learns. */
export interface TinkerTrainerOptions {
  /** @default 4e-4 */
  readonly learningRate?: number
  /** One of `tinkerLosses` that the server has. @default `ppo`, or `importance-sampling` if there is none */
  readonly loss?: string
  /**
   * What the server itself divides a row's sum by; we multiply by it to undo that.
   * @default what this kind of server is known to do
   */
  readonly divides?: FactorOptions['divides']
  /** Passes over each batch. @default 1 */
  readonly epochs?: number
  /** The rank of the adapter that is trained. @default 32, or the most that the server takes */
  readonly rank?: number
  /** Which maps the adapter changes. @default all that the server lets be changed */
  readonly targets?: readonly TinkerTarget[]
  /** @default 0 */
  readonly weightDecay?: number
  /** The largest norm of a gradient; a larger one is scaled down to it. @default none */
  readonly gradientClip?: number
  /** Adam's epsilon. @default 1e-12, as Tinker's own */
  readonly epsilon?: number
  /** Whether each datum names the server's sequences that its tokens come from. @default false */
  readonly provenance?: boolean
  /** @default 0 */
  readonly seed?: number
  /** @default 'uniform' */
  readonly weighting?: LeafWeighting
}

/** The options in a trainer's address: `tinker:URL?rank=16&targets=attention,mlp`. */
export type TinkerUriOptions = Pick<
  TinkerTrainerOptions,
  'divides' | 'rank' | 'targets' | 'weightDecay' | 'gradientClip' | 'epsilon' | 'provenance'
>

const divisions = ['nothing', 'rows', 'trained']
const targetNames = ['attention', 'mlp', 'unembed']

interface Parameter {
  readonly option: keyof TinkerUriOptions
  readonly takes: string
  read(value: string): unknown
}

const parameters: Readonly<Record<string, Parameter>> = {
  divides: {
    option: 'divides',
    takes: divisions.join(', '),
    read: value => (divisions.includes(value) ? value : undefined),
  },
  rank: {
    option: 'rank',
    takes: 'a whole number from 1 on',
    read: value => (/^[1-9]\d*$/.test(value) ? Number(value) : undefined),
  },
  targets: {
    option: 'targets',
    takes: `names out of ${targetNames.join(', ')}, separated by commas`,
    read: value => {
      const names = value.split(',')
      return names.every(name => targetNames.includes(name)) ? names : undefined
    },
  },
  'weight-decay': { option: 'weightDecay', takes: 'a number from 0 on', read: readNumber },
  'gradient-clip': { option: 'gradientClip', takes: 'a number from 0 on', read: readNumber },
  provenance: {
    option: 'provenance',
    takes: 'true or false',
    read: value => (value === 'true' || value === 'false' ? value === 'true' : undefined),
  },
  epsilon: { option: 'epsilon', takes: 'a number from 0 on', read: readNumber },
}

function readNumber(value: string): number | undefined {
  const number = value === '' ? Number.NaN : Number(value)
  return number >= 0 && Number.isFinite(number) ? number : undefined
}

/** Reads the options after `?` in `tinker:URL?…`. */
export function readTinkerUri(name: string): {
  readonly url: string
  readonly options: TinkerUriOptions
} {
  const rest = name.slice('tinker:'.length)
  const mark = rest.indexOf('?')
  const url = mark < 0 ? rest : rest.slice(0, mark)
  const options: Record<string, unknown> = {}
  for (const [key, value] of new URLSearchParams(mark < 0 ? '' : rest.slice(mark + 1))) {
    const parameter = Object.hasOwn(parameters, key) ? parameters[key] : undefined
    if (!parameter) {
      const known = Object.keys(parameters)
      throw new SettingError(
        `--trainer ${name}: after ? it takes ${known.join(', ')}, not "${key}".${didYouMean(key, known)}`,
      )
    }
    const read = parameter.read(value)
    if (read === undefined) {
      throw new SettingError(`--trainer ${name}: ${key} takes ${parameter.takes}, not "${value}"`)
    }
    options[parameter.option] = read
  }
  return { url, options: options as TinkerUriOptions }
}
