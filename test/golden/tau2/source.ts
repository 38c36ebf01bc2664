import { createHash } from 'node:crypto'
import { parseJson } from '@espalier/text/python'
import { Checkout, domainPath } from '../../../src/worlds/tau2/data/checkout.ts'
import { type DomainName, type Retrieval, Tau2Domain } from '../../../src/worlds/tau2/domain.ts'
import type { Dict } from '../../../src/worlds/tau2/program/values.ts'
import { Prompts } from '../../../src/worlds/tau2/prompts.ts'
import type { Tau2Task } from '../../../src/worlds/tau2/task.ts'
import type { Foreign } from '../../foreign.ts'

/** A row of a golden file; its fields depend on the kind of row. */
export type Tau2Row = Foreign

/** What is wrong with our answer; nothing when it is right. */
export type Problem = string | undefined

export const sha256 = (text: string): string =>
  createHash('sha256').update(text, 'utf8').digest('hex')

/** How many code points a text has, as Python counts. */
export const lengthOf = (text: string): number => [...text].length

export function differ(what: string, wanted: unknown, got: unknown): Problem {
  const [left, right] = [JSON.stringify(wanted), JSON.stringify(got)]
  if (left === right) return undefined
  return `${what}: wanted ${left?.slice(0, 300)}, got ${right?.slice(0, 300)}`
}

export const firstOf = (...problems: readonly Problem[]): Problem =>
  problems.find(problem => problem !== undefined)

/** The arguments of a call, given as JSON text. */
export const argumentsOf = (text: string): Dict => parseJson(text) as Dict

const sources = new Map<string, Tau2Source>()

/** The checkout of a run, each domain loaded once. */
export class Tau2Source {
  readonly checkout: Checkout
  readonly prompts: Prompts
  readonly #options: { readonly root: string; readonly predecessor?: string }
  readonly #domains = new Map<string, Tau2Domain>()
  readonly #tasks = new Map<string, ReadonlyMap<string, Tau2Task>>()

  private constructor(root: string, predecessor: string | undefined) {
    this.#options = { root, ...(predecessor !== undefined && { predecessor }) }
    this.checkout = new Checkout(this.#options)
    this.prompts = new Prompts(this.checkout)
  }

  static of(root: string, predecessor: string | undefined): Tau2Source {
    const known = sources.get(root) ?? new Tau2Source(root, predecessor)
    sources.set(root, known)
    return known
  }

  /** Why nothing of a domain can be checked, where that is so. */
  lacks(domain: string): string | undefined {
    if (domain !== 'airline' || this.checkout.has(domainPath('airline', 'db.json')))
      return undefined
    return 'the checkout lacks airline/db.json, and no checkout of tau-bench to make it from is given by --tau-bench'
  }

  domain(name: string, retrieval: Retrieval = 'no_knowledge'): Tau2Domain {
    const key = `${name} ${retrieval}`
    let domain = this.#domains.get(key)
    if (domain === undefined) {
      const draw = (count: number): string => String(count + 1).padStart(8, '0')
      domain = new Tau2Domain({ ...this.#options, domain: name as DomainName, retrieval, draw })
      this.#domains.set(key, domain)
    }
    return domain
  }

  task(domain: string, id: string): Tau2Task {
    let tasks = this.#tasks.get(domain)
    if (tasks === undefined) {
      tasks = new Map(this.domain(domain).tasks.map(task => [task.id, task]))
      this.#tasks.set(domain, tasks)
    }
    const task = tasks.get(id)
    if (task === undefined) throw new Error(`${domain} has no task ${id}.`)
    return task
  }
}
