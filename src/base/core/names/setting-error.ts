/** A wrong value of a setting, with where it came from. */
export class SettingError extends Error {
  override name = 'SettingError'
}
