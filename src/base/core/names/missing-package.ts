import { SettingError } from './setting-error.ts'

/** The error for a part whose optional packages are not installed, with the line that installs them. */
export function missingPackage(part: string, packages: string, cause: unknown): SettingError {
  return new SettingError(`${part} needs a package that is not installed: npm i ${packages}`, {
    cause,
  })
}
