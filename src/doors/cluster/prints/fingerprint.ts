import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { splitItems } from '../../../base/core/names/part-name.ts'
import { isSource, packageFolder } from '../../../base/core/process/package-folder.ts'
import { packageVersion } from '../../../base/core/process/package-version.ts'
import type { SettingsInput } from '../../../run/settings/settings.ts'
import { isUserPart, splitUserPart } from '../../../run/settings/user-part.ts'
import { codeUnder, digestOfFiles, digestOfPath } from './digests.ts'
import { codeOf, packagesOf } from './user-code.ts'

/** What must be equal on every machine of a run, by the name used in messages. */
export type Fingerprint = Readonly<Record<string, string>>

/** The fingerprint of the code and of the files that these settings are rolled with here. */
export function fingerprintOf(config: SettingsInput): Fingerprint {
  const named = [...new Set(textsIn(config))]
  const code = named.filter(isCode).map(name => splitUserPart(name)[0])
  return {
    espalier: packageVersion(),
    "espalier's own code": ownCode(),
    'the major version of Node': process.versions.node.split('.')[0]!,
    ...packagesOf(code.flatMap(path => codeOf(resolve(path)))),
    ...Object.fromEntries(
      code.map(path => [`the code of ${path}`, digestOfFiles(codeOf(resolve(path)))]),
    ),
    ...Object.fromEntries(named.flatMap(dataIn).map(path => [path, digestOfPath(path)])),
  }
}

/** What differs here from there, in words; nothing if nothing does. */
export function differences(there: Fingerprint, here: Fingerprint): readonly string[] {
  return Object.keys({ ...there, ...here })
    .filter(name => there[name] !== here[name])
    .map(
      name => `${name} is ${shown(here[name])} here and ${shown(there[name])} at the coordinator`,
    )
}

const shown = (value: string | undefined): string =>
  value === undefined ? 'missing' : /^[\da-f]{64}$/.test(value) ? value.slice(0, 12) : value

/** The texts of settings, at any depth. */
function textsIn(config: unknown): readonly string[] {
  if (typeof config === 'string') return [config]
  if (typeof config !== 'object' || config === null) return []
  return Object.values(config).flatMap(textsIn)
}

const isCode = (name: string): boolean => isUserPart(name) && /\.[cm]?[jt]sx?(#|$)/.test(name)

/**
 * Files and folders of data that a setting names: a model, answers, a cassette, a benchmark's folder. Whatever
 * is there under the name of a scheme's place, a variant or an option is taken for one.
 */
function dataIn(text: string): readonly string[] {
  const paths = splitItems(text, ',').flatMap(item => {
    const values = [...item.matchAll(/[:=]/g)].map(({ index }) => item.slice(index + 1))
    return /[./]/.test(item) ? [item, ...values] : values
  })
  return paths.filter(path => path !== '' && !isCode(path) && existsSync(path))
}

let own: string | undefined

/** A digest of the program itself: during development two builds of one version may differ. */
function ownCode(): string {
  const folder = fileURLToPath(new URL(isSource ? 'src/' : 'dist/', packageFolder))
  own ??= digestOfFiles(codeUnder(folder).filter(isProgram), folder)
  return own
}

const isProgram = (file: string): boolean =>
  /\.(?:js|ts|wasm)$/.test(file) && !/\.(?:test|d)\.ts$|\.test\.js$/.test(file)
