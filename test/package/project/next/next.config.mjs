export default {
  typescript: { ignoreBuildErrors: process.env.CHECK_TYPES === '0' },
}
