import { ProgramObject } from './values.ts'

const DAY = 86_400_000

/** Days, and milliseconds of a day, from one moment to another. */
export class TimeDelta extends ProgramObject {
  readonly type = 'timedelta'
  readonly milliseconds: number
  constructor(milliseconds: number) {
    super()
    this.milliseconds = milliseconds
  }
  get days(): number {
    return Math.floor(this.milliseconds / DAY)
  }
  /** Whole seconds beside the days. */
  get seconds(): number {
    return Math.floor((this.milliseconds - this.days * DAY) / 1000)
  }
  /** What is left beside days and seconds. */
  get microseconds(): number {
    return Math.round((this.milliseconds - this.days * DAY - this.seconds * 1000) * 1000)
  }
  equals(other: unknown): boolean {
    return other instanceof TimeDelta && other.milliseconds === this.milliseconds
  }
  /** `1 day, 2:00:00`, as `str` prints it. */
  text(): string {
    const two = (count: number): string => String(count).padStart(2, '0')
    const { days, seconds, microseconds } = this
    const day = days === 0 ? '' : `${days} day${Math.abs(days) === 1 ? '' : 's'}, `
    const clock = `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`
    const rest = microseconds === 0 ? '' : `.${String(microseconds).padStart(6, '0')}`
    return day + clock + rest
  }
}

/** A day, or a moment of one; without a time zone, as the programs here use them. */
export class ProgramDate extends ProgramObject {
  /** Milliseconds since 1970, as if the time were UTC. */
  readonly at: number
  readonly hasTime: boolean
  #text: string | undefined
  constructor(at: number, hasTime: boolean) {
    super()
    this.at = at
    this.hasTime = hasTime
  }
  get type(): string {
    return this.hasTime ? 'datetime' : 'date'
  }
  equals(other: unknown): boolean {
    return other instanceof ProgramDate && other.hasTime === this.hasTime && other.at === this.at
  }
  /** `2025-02-25`, or with its time after `between`. */
  text(between = ' '): string {
    if (between !== ' ') return this.#write(between)
    this.#text ??= this.#write(between)
    return this.#text
  }
  #write(between: string): string {
    const whole = new Date(this.at).toISOString()
    if (!this.hasTime) return whole.slice(0, 10)
    const fraction = this.at % 1000 === 0 ? '' : `${whole.slice(19, 23)}000`
    return `${whole.slice(0, 10)}${between}${whole.slice(11, 19)}${fraction}`
  }
  /** The parts that `repr` prints: seconds only if there are any. */
  get shown(): readonly number[] {
    const { parts } = this
    const fraction = (((this.at % 1000) + 1000) % 1000) * 1000
    if (fraction !== 0) return [...parts, fraction]
    return this.hasTime && parts[5] === 0 ? parts.slice(0, 5) : parts
  }
  get parts(): readonly number[] {
    const date = new Date(this.at)
    const day = [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()]
    if (!this.hasTime) return day
    return [...day, date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()]
  }
}

/** The moment of a day that exists, else `undefined`. */
export function dayAt(year: number, month: number, day: number): number | undefined {
  const at = Date.UTC(year, month - 1, day)
  const date = new Date(at)
  const isReal =
    date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day
  return isReal ? at : undefined
}
