/** A value that no setting takes, with where it came from. */
export class SettingError extends Error {
  override name = 'SettingError'
}
