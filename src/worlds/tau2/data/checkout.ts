import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fromHome } from '../../../base/core/names/home-path.ts'
import { rebuildAirline } from './rebuild-airline.ts'

/** Where the data of tau2-bench lies. */
export interface CheckoutOptions {
  /** The root of a checkout of sierra-research/tau2-bench. */
  readonly root: string
  /** A checkout of its predecessor tau-bench, from which a trimmed copy gets its airline database. @default `tau-bench` beside it */
  readonly predecessor?: string
}

/** The path of a domain's folder in a checkout. */
export const domainPath = (domain: string, file = ''): string => join('tau2/domains', domain, file)

const AIRLINE_DATABASE = domainPath('airline', 'db.json')

/** A checkout, read file by file as needed; no other program ever runs its code. */
export class Checkout {
  readonly root: string
  readonly #predecessor: string

  constructor({ root, predecessor }: CheckoutOptions) {
    this.root = fromHome(root)
    // The two checkouts usually lie side by side.
    this.#predecessor = fromHome(predecessor ?? join(this.root, '../tau-bench'))
    if (!existsSync(join(this.root, 'src/tau2')) || !existsSync(join(this.root, 'data/tau2'))) {
      throw new Error(
        `No checkout of tau2-bench in ${this.root}: it has no src/tau2 and data/tau2. Clone https://github.com/sierra-research/tau2-bench and name its folder.`,
      )
    }
  }

  /** Whether the data has a file, or what it can be made from. */
  has(path: string): boolean {
    return (
      existsSync(join(this.root, 'data', path)) ||
      (path === AIRLINE_DATABASE && this.#airlineSource() !== undefined)
    )
  }

  /** A file of the folder `data`. */
  data(path: string): string {
    const file = join(this.root, 'data', path)
    if (existsSync(file)) return readFileSync(file, 'utf8')
    const source = path === AIRLINE_DATABASE ? this.#airlineSource() : undefined
    if (source) return rebuildAirline(source)
    if (path === AIRLINE_DATABASE) {
      throw new Error(
        `${file} is missing, as in trimmed copies. It can be made from a checkout of tau-bench: name one with predecessor=DIR.`,
      )
    }
    throw new Error(`${file} is missing.`)
  }

  /** The names of the files in a folder of `data`, sorted. */
  list(path: string): readonly string[] {
    const folder = join(this.root, 'data', path)
    return existsSync(folder) ? readdirSync(folder).sort() : []
  }

  /** The source of a module of the package, by its dotted name. */
  source(name: string): string | undefined {
    if (!/^tau2(\.\w+)*$/.test(name)) return undefined
    const path = join(this.root, 'src', ...name.split('.'))
    for (const file of [`${path}.py`, join(path, '__init__.py')]) {
      if (existsSync(file)) return readFileSync(file, 'utf8')
    }
    return undefined
  }

  #airlineSource(): ((file: string) => string) | undefined {
    const folder = join(this.#predecessor, 'tau_bench/envs/airline/data')
    if (!existsSync(folder)) return undefined
    return file => readFileSync(join(folder, file), 'utf8')
  }
}
