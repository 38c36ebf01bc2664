import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { PythonDict } from '@espalier/text/python'
import { parseJson } from '@espalier/text/python'
import type { DomainName, TauDomain } from '../../../src/worlds/tau/domain.ts'
import { loadTau } from '../../../src/worlds/tau/load.ts'
import type { TauAction, TauTask } from '../../../src/worlds/tau/task.ts'
import type { Foreign } from '../../foreign.ts'

/** A row of a golden file, parsed as JavaScript; which fields it has depends on the file. */
export type TauRow = Foreign

/** What is wrong, or nothing. */
export type Problem = string | undefined

/** The domains of a checkout, each loaded once. */
export class TauSource {
  readonly #root: string
  readonly #domains = new Map<string, Promise<TauDomain>>()

  constructor(root: string) {
    this.#root = root
  }

  domain(name: string): Promise<TauDomain> {
    const known = this.#domains.get(name)
    if (known !== undefined) return known
    const loading = loadTau({ root: this.#root, domain: name as DomainName })
    this.#domains.set(name, loading)
    return loading
  }
}

export function taskOf(domain: TauDomain, split: string, index: number): TauTask {
  const task = domain.tasks[split]?.[index]
  if (task === undefined) throw new Error(`No task ${index} in ${domain.name} ${split}.`)
  return task
}

export function action(name: string, kwargs: string): TauAction {
  return { name, kwargs: parseJson(kwargs) as PythonDict }
}

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** The length that Python would give, in code points. */
export const lengthOf = (text: string): number => [...text].length

/** Compares two values of one name; says so when they differ. */
export function differ(name: string, wanted: unknown, got: unknown): Problem {
  if (isDeepStrictEqual(wanted, got)) return undefined
  return `${name}: wanted ${show(wanted)}, got ${show(got)}`
}

/** The first of several problems. */
export function firstOf(...problems: readonly Problem[]): Problem {
  return problems.find(problem => problem !== undefined)
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 400 ? `${text.slice(0, 400)}…` : text
}

/** A text as the golden files shorten it, or the text itself. */
export function matchesText(wanted: unknown, got: string): boolean {
  if (typeof wanted !== 'object' || wanted === null) return wanted === got
  const { len, sha256: digest } = wanted as { len: number; sha256: string }
  return lengthOf(got) === len && sha256(got) === digest
}
