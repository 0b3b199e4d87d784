/** What node-mavlink knows of the messages of all dialects. Made by pack-definitions.ts; changes are lost. */

/** Of each message: id, CRC_EXTRA, and its length without and with the extensions. */
export const checks = `
0 50 9 9, 1 124 31 43, 2 137 12 12, 4 237 14 14, 5 217 28 28, 6 104 3 3,
7 119 32 32, 11 89 6 6, 20 214 20 20, 21 159 2 2, 22 220 25 25, 23 168 23 23,
24 24 30 52, 25 23 101 101, 26 170 22 24, 27 144 26 29, 28 67 16 16, 29 115 14 16,
30 39 28 28, 31 246 32 48, 32 185 28 28, 33 104 28 28, 34 237 22 22, 35 244 22 22,
36 222 21 37, 37 212 6 7, 38 9 6 7, 39 254 37 38, 40 230 4 5, 41 28 4 4,
42 28 2 18, 43 132 2 3, 44 221 4 9, 45 232 2 3, 46 11 2 2, 47 153 3 8,
48 41 13 21, 49 39 12 20, 50 78 37 37, 51 196 4 5, 54 15 27 27, 55 3 25 25,
61 167 72 72, 62 183 26 26, 63 119 181 181, 64 191 225 225, 65 118 42 42, 66 148 6 6,
67 21 4 4, 69 243 11 30, 70 124 18 38, 73 38 37 38, 74 20 20 20, 75 158 35 35,
76 152 33 33, 77 143 3 10, 81 106 22 22, 82 49 39 51, 83 22 37 37, 84 143 53 53,
85 140 51 51, 86 5 53 53, 87 150 51 51, 89 231 28 28, 90 183 56 56, 91 63 42 42,
92 54 33 33, 93 47 81 81, 100 175 26 34, 101 102 32 117, 102 158 32 117, 103 208 20 57,
104 56 32 116, 105 93 62 63, 106 138 44 44, 107 108 64 65, 108 32 84 92, 109 185 9 9,
110 84 254 254, 111 34 16 18, 112 174 12 12, 113 124 36 39, 114 237 44 44, 115 4 64 64,
116 76 22 24, 117 128 6 6, 118 56 14 14, 119 116 12 12, 120 134 97 97, 121 237 2 2,
122 203 2 2, 123 250 113 113, 124 87 35 57, 125 203 6 6, 126 220 79 81, 127 25 35 35,
128 226 35 35, 129 46 22 24, 130 29 13 13, 131 223 255 255, 132 85 14 39, 133 6 18 18,
134 229 43 43, 135 203 8 8, 136 1 22 22, 137 195 14 16, 138 109 36 120, 139 168 43 43,
140 181 41 41, 141 47 32 32, 142 72 243 243, 143 131 14 16, 144 127 93 93, 146 103 100 100,
147 154 36 54, 148 178 60 78, 149 200 30 60, 150 134 42 42, 151 219 8 8, 152 208 4 8,
153 188 12 12, 154 84 15 15, 155 22 13 13, 156 19 6 6, 157 21 15 15, 158 134 14 15,
160 78 12 12, 161 68 3 3, 162 189 8 9, 163 127 28 28, 164 154 44 44, 165 21 3 3,
166 21 9 9, 167 144 22 22, 168 1 12 12, 169 234 18 18, 170 73 34 34, 171 181 66 66,
172 22 98 98, 173 83 8 8, 174 167 48 48, 175 138 19 19, 176 234 3 3, 177 240 20 20,
178 47 24 24, 179 189 29 29, 180 52 45 47, 181 174 4 4, 182 229 40 40, 183 85 2 2,
184 159 206 206, 185 186 7 7, 186 72 29 29, 191 92 27 27, 192 36 44 54, 193 71 22 26,
194 98 25 33, 195 120 37 37, 200 134 42 42, 201 205 14 14, 214 69 8 8, 215 101 3 3,
216 50 3 3, 217 202 6 6, 218 17 7 7, 219 162 2 2, 220 34 32 32, 221 71 42 42,
222 15 3 3, 223 119 47 47, 224 102 45 45, 225 208 65 73, 226 207 8 8, 230 163 42 42,
231 105 40 40, 232 151 63 65, 233 35 182 182, 234 150 40 40, 235 179 42 42, 241 90 32 32,
242 104 52 60, 243 85 53 61, 244 95 6 6, 245 130 2 2, 246 184 38 38, 247 81 19 19,
248 8 254 254, 249 204 36 36, 250 49 30 30, 251 170 18 18, 252 44 18 18, 253 83 51 54,
254 46 9 9, 256 71 42 42, 257 131 9 9, 258 187 32 232, 259 92 235 237, 260 146 5 14,
261 179 27 61, 262 12 18 23, 263 133 255 255, 264 49 28 32, 265 26 16 20, 266 193 255 255,
267 35 255 255, 268 14 4 4, 269 109 213 215, 270 59 19 20, 271 22 52 53, 275 126 31 32,
276 18 49 50, 277 62 30 30, 280 70 33 33, 281 48 13 13, 282 123 35 35, 283 74 144 145,
284 99 32 32, 285 137 40 49, 286 210 53 57, 287 1 23 23, 288 20 23 23, 295 234 12 12,
296 50 35 35, 299 19 96 98, 301 243 58 58, 310 28 17 17, 311 95 116 116, 320 243 20 20,
321 88 2 2, 322 243 149 149, 323 78 147 147, 324 132 146 146, 330 23 158 167, 331 91 230 233,
332 236 239 239, 333 231 109 109, 334 72 10 10, 335 225 24 24, 336 245 84 84, 339 199 5 5,
340 99 70 70, 350 232 20 252, 360 11 25 25, 369 151 24 24, 370 75 87 109, 371 10 26 26,
373 117 42 42, 375 251 140 140, 385 147 133 133, 386 132 16 16, 387 4 72 72, 388 8 37 37,
395 0 212 212, 396 50 160 160, 400 110 254 254, 401 183 6 6, 414 109 16 16, 415 161 16 16,
420 20 9 73, 435 134 46 46, 436 193 9 9, 437 30 1 1, 440 66 35 35, 441 169 17 17,
510 245 106 106, 511 28 71 71, 512 184 2 2, 8002 218 16 16, 8003 231 41 41, 8004 172 98 98,
8005 251 38 38, 8006 97 14 14, 8007 64 32 32, 8008 234 33 33, 8009 144 16 16, 8010 155 41 41,
8011 20 102 102, 8012 54 16 16, 8013 222 46 46, 8014 200 14 14, 8015 23 24 24, 8016 149 18 18,
9000 113 137 137, 9005 117 34 34, 10001 209 20 20, 10002 186 41 41, 10003 4 1 1, 10004 133 9 9,
10005 103 9 9, 10006 193 4 4, 10007 71 17 17, 10008 240 14 14, 11000 134 51 52, 11001 15 135 136,
11002 234 179 180, 11003 64 5 5, 11004 11 232 232, 11005 93 230 230, 11010 46 49 49, 11011 106 44 44,
11020 205 16 16, 11030 144 44 44, 11031 133 44 44, 11032 85 44 44, 11033 195 37 37, 11034 79 5 5,
11035 128 8 8, 11036 177 34 34, 11037 130 28 28, 11038 47 38 38, 11039 142 9 9, 11040 132 44 44,
11041 208 44 44, 11042 201 44 44, 11043 193 44 44, 11044 189 44 44, 12900 114 44 44, 12901 254 59 59,
12902 140 53 53, 12903 249 46 46, 12904 77 54 54, 12905 49 43 43, 12915 94 249 249, 12918 139 51 51,
12919 7 18 18, 12920 20 5 5, 42000 227 1 1, 42001 239 46 46, 60010 208 33 33, 60011 183 7 7,
60012 99 36 36, 60013 129 24 24, 60014 134 8 8, 60040 156 245 245, 60045 14 15 23, 60046 171 28 28
`;

/** Of each message with a target_system: id and the offset of that field. */
export const targets = `
4 12, 5 0, 11 4, 20 2, 21 0, 23 4,
37 4, 38 4, 39 32, 40 2, 41 2, 43 0,
44 2, 45 0, 47 0, 48 12, 50 18, 51 2,
54 24, 66 2, 70 16, 73 32, 75 30, 76 30,
77 8, 82 36, 84 50, 86 50, 110 1, 111 16,
117 4, 119 10, 121 0, 122 0, 123 0, 126 79,
139 41, 151 6, 154 6, 155 4, 156 0, 157 12,
158 12, 160 8, 161 0, 175 14, 176 0, 179 26,
180 42, 183 0, 184 4, 185 4, 186 0, 200 40,
201 12, 214 6, 216 0, 218 0, 223 42, 224 42,
243 52, 248 3, 256 8, 258 0, 266 2, 267 2,
268 2, 282 32, 284 30, 285 38, 286 50, 287 20,
288 20, 320 2, 321 0, 323 0, 385 2, 386 4,
387 4, 388 32, 400 4, 401 4, 420 6, 11000 4,
11002 4, 11004 8, 11033 16, 11035 4, 12900 0, 12901 30,
12902 4, 12903 0, 12904 28, 12905 0, 12915 0, 12919 16,
60012 32, 60013 20, 60014 4, 60045 2, 60046 8
`;

/** Of each message that the driver reads or writes: id and fields, in the order of the wire. */
export const layouts = {
  HEARTBEAT:
    '0: uint32_t custom_mode, uint8_t type, uint8_t autopilot, uint8_t base_mode, uint8_t system_status, uint8_t mavlink_version',
  SYS_STATUS:
    '1: uint32_t onboard_control_sensors_present, uint32_t onboard_control_sensors_enabled, uint32_t onboard_control_sensors_health, uint16_t load, uint16_t voltage_battery, int16_t current_battery, uint16_t drop_rate_comm, uint16_t errors_comm, uint16_t errors_count1, uint16_t errors_count2, uint16_t errors_count3, uint16_t errors_count4, int8_t battery_remaining, uint32_t onboard_control_sensors_present_extended, uint32_t onboard_control_sensors_enabled_extended, uint32_t onboard_control_sensors_health_extended',
  SYSTEM_TIME: '2: uint64_t time_unix_usec, uint32_t time_boot_ms',
  SET_MODE: '11: uint32_t custom_mode, uint8_t target_system, uint8_t base_mode',
  PARAM_REQUEST_READ:
    '20: int16_t param_index, uint8_t target_system, uint8_t target_component, char param_id[16]',
  PARAM_REQUEST_LIST: '21: uint8_t target_system, uint8_t target_component',
  GPS_RAW_INT:
    '24: uint64_t time_usec, int32_t lat, int32_t lon, int32_t alt, uint16_t eph, uint16_t epv, uint16_t vel, uint16_t cog, uint8_t fix_type, uint8_t satellites_visible, int32_t alt_ellipsoid, uint32_t h_acc, uint32_t v_acc, uint32_t vel_acc, uint32_t hdg_acc, uint16_t yaw',
  ATTITUDE:
    '30: uint32_t time_boot_ms, float roll, float pitch, float yaw, float rollspeed, float pitchspeed, float yawspeed',
  GLOBAL_POSITION_INT:
    '33: uint32_t time_boot_ms, int32_t lat, int32_t lon, int32_t alt, int32_t relative_alt, int16_t vx, int16_t vy, int16_t vz, uint16_t hdg',
  RC_CHANNELS_RAW:
    '35: uint32_t time_boot_ms, uint16_t chan1_raw, uint16_t chan2_raw, uint16_t chan3_raw, uint16_t chan4_raw, uint16_t chan5_raw, uint16_t chan6_raw, uint16_t chan7_raw, uint16_t chan8_raw, uint8_t port, uint8_t rssi',
  MISSION_REQUEST: '40: uint16_t seq, uint8_t target_system, uint8_t target_component, uint8_t mission_type',
  MISSION_SET_CURRENT: '41: uint16_t seq, uint8_t target_system, uint8_t target_component',
  MISSION_CURRENT:
    '42: uint16_t seq, uint16_t total, uint8_t mission_state, uint8_t mission_mode, uint32_t mission_id, uint32_t fence_id, uint32_t rally_points_id',
  MISSION_REQUEST_LIST: '43: uint8_t target_system, uint8_t target_component, uint8_t mission_type',
  MISSION_COUNT:
    '44: uint16_t count, uint8_t target_system, uint8_t target_component, uint8_t mission_type, uint32_t opaque_id',
  MISSION_CLEAR_ALL: '45: uint8_t target_system, uint8_t target_component, uint8_t mission_type',
  MISSION_ITEM_REACHED: '46: uint16_t seq',
  MISSION_ACK:
    '47: uint8_t target_system, uint8_t target_component, uint8_t type, uint8_t mission_type, uint32_t opaque_id',
  MISSION_REQUEST_INT:
    '51: uint16_t seq, uint8_t target_system, uint8_t target_component, uint8_t mission_type',
  NAV_CONTROLLER_OUTPUT:
    '62: float nav_roll, float nav_pitch, float alt_error, float aspd_error, float xtrack_error, int16_t nav_bearing, int16_t target_bearing, uint16_t wp_dist',
  RC_CHANNELS:
    '65: uint32_t time_boot_ms, uint16_t chan1_raw, uint16_t chan2_raw, uint16_t chan3_raw, uint16_t chan4_raw, uint16_t chan5_raw, uint16_t chan6_raw, uint16_t chan7_raw, uint16_t chan8_raw, uint16_t chan9_raw, uint16_t chan10_raw, uint16_t chan11_raw, uint16_t chan12_raw, uint16_t chan13_raw, uint16_t chan14_raw, uint16_t chan15_raw, uint16_t chan16_raw, uint16_t chan17_raw, uint16_t chan18_raw, uint8_t chancount, uint8_t rssi',
  REQUEST_DATA_STREAM:
    '66: uint16_t req_message_rate, uint8_t target_system, uint8_t target_component, uint8_t req_stream_id, uint8_t start_stop',
  MISSION_ITEM_INT:
    '73: float param1, float param2, float param3, float param4, int32_t x, int32_t y, float z, uint16_t seq, uint16_t command, uint8_t target_system, uint8_t target_component, uint8_t frame, uint8_t current, uint8_t autocontinue, uint8_t mission_type',
  VFR_HUD:
    '74: float airspeed, float groundspeed, float alt, float climb, int16_t heading, uint16_t throttle',
  COMMAND_INT:
    '75: float param1, float param2, float param3, float param4, int32_t x, int32_t y, float z, uint16_t command, uint8_t target_system, uint8_t target_component, uint8_t frame, uint8_t current, uint8_t autocontinue',
  COMMAND_LONG:
    '76: float param1, float param2, float param3, float param4, float param5, float param6, float param7, uint16_t command, uint8_t target_system, uint8_t target_component, uint8_t confirmation',
  COMMAND_ACK:
    '77: uint16_t command, uint8_t result, uint8_t progress, int32_t result_param2, uint8_t target_system, uint8_t target_component',
  SET_POSITION_TARGET_GLOBAL_INT:
    '86: uint32_t time_boot_ms, int32_t lat_int, int32_t lon_int, float alt, float vx, float vy, float vz, float afx, float afy, float afz, float yaw, float yaw_rate, uint16_t type_mask, uint8_t target_system, uint8_t target_component, uint8_t coordinate_frame',
  POSITION_TARGET_GLOBAL_INT:
    '87: uint32_t time_boot_ms, int32_t lat_int, int32_t lon_int, float alt, float vx, float vy, float vz, float afx, float afy, float afz, float yaw, float yaw_rate, uint16_t type_mask, uint8_t coordinate_frame',
  RADIO_STATUS:
    '109: uint16_t rxerrors, uint16_t fixed, uint8_t rssi, uint8_t remrssi, uint8_t txbuf, uint8_t noise, uint8_t remnoise',
  FILE_TRANSFER_PROTOCOL:
    '110: uint8_t target_network, uint8_t target_system, uint8_t target_component, uint8_t payload[251]',
  TIMESYNC: '111: uint64_t tc1, uint64_t ts1, uint8_t target_system, uint8_t target_component',
  LOG_REQUEST_LIST: '117: uint16_t start, uint16_t end, uint8_t target_system, uint8_t target_component',
  LOG_ENTRY: '118: uint32_t time_utc, uint32_t size, uint16_t id, uint16_t num_logs, uint16_t last_log_num',
  LOG_REQUEST_DATA:
    '119: uint32_t ofs, uint32_t count, uint16_t id, uint8_t target_system, uint8_t target_component',
  LOG_DATA: '120: uint32_t ofs, uint16_t id, uint8_t count, uint8_t data[90]',
  LOG_REQUEST_END: '122: uint8_t target_system, uint8_t target_component',
  GPS2_RAW:
    '124: uint64_t time_usec, int32_t lat, int32_t lon, int32_t alt, uint32_t dgps_age, uint16_t eph, uint16_t epv, uint16_t vel, uint16_t cog, uint8_t fix_type, uint8_t satellites_visible, uint8_t dgps_numch, uint16_t yaw, int32_t alt_ellipsoid, uint32_t h_acc, uint32_t v_acc, uint32_t vel_acc, uint32_t hdg_acc',
  TERRAIN_REPORT:
    '136: int32_t lat, int32_t lon, float terrain_height, float current_height, uint16_t spacing, uint16_t pending, uint16_t loaded',
  ALTITUDE:
    '141: uint64_t time_usec, float altitude_monotonic, float altitude_amsl, float altitude_local, float altitude_relative, float altitude_terrain, float bottom_clearance',
  BATTERY_STATUS:
    '147: int32_t current_consumed, int32_t energy_consumed, int16_t temperature, uint16_t voltages[10], int16_t current_battery, uint8_t id, uint8_t battery_function, uint8_t type, int8_t battery_remaining, int32_t time_remaining, uint8_t charge_state, uint16_t voltages_ext[4], uint8_t mode, uint32_t fault_bitmask',
  AUTOPILOT_VERSION:
    '148: uint64_t capabilities, hex64 uid, uint32_t flight_sw_version, uint32_t middleware_sw_version, uint32_t os_sw_version, uint32_t board_version, uint16_t vendor_id, uint16_t product_id, uint8_t flight_custom_version[8], uint8_t middleware_custom_version[8], uint8_t os_custom_version[8], uint8_t uid2[18]',
  FENCE_STATUS:
    '162: uint32_t breach_time, uint16_t breach_count, uint8_t breach_status, uint8_t breach_type, uint8_t breach_mitigation',
  RADIO:
    '166: uint16_t rxerrors, uint16_t fixed, uint8_t rssi, uint8_t remrssi, uint8_t txbuf, uint8_t noise, uint8_t remnoise',
  WIND: '168: float direction, float speed, float speed_z',
  EKF_STATUS_REPORT:
    '193: float velocity_variance, float pos_horiz_variance, float pos_vert_variance, float compass_variance, float terrain_alt_variance, uint16_t flags, float airspeed_variance',
  ESTIMATOR_STATUS:
    '230: uint64_t time_usec, float vel_ratio, float pos_horiz_ratio, float pos_vert_ratio, float mag_ratio, float hagl_ratio, float tas_ratio, float pos_horiz_accuracy, float pos_vert_accuracy, uint16_t flags',
  WIND_COV:
    '231: uint64_t time_usec, float wind_x, float wind_y, float wind_z, float var_horiz, float var_vert, float wind_alt, float horiz_accuracy, float vert_accuracy',
  HIGH_LATENCY2:
    '235: uint32_t timestamp, int32_t latitude, int32_t longitude, uint16_t custom_mode, int16_t altitude, int16_t target_altitude, uint16_t target_distance, uint16_t wp_num, uint16_t failure_flags, uint8_t type, uint8_t autopilot, uint8_t heading, uint8_t target_heading, uint8_t throttle, uint8_t airspeed, uint8_t airspeed_sp, uint8_t groundspeed, uint8_t windspeed, uint8_t wind_heading, uint8_t eph, uint8_t epv, int8_t temperature_air, int8_t climb_rate, int8_t battery, int8_t custom0, int8_t custom1, int8_t custom2',
  VIBRATION:
    '241: uint64_t time_usec, float vibration_x, float vibration_y, float vibration_z, uint32_t clipping_0, uint32_t clipping_1, uint32_t clipping_2',
  HOME_POSITION:
    '242: int32_t latitude, int32_t longitude, int32_t altitude, float x, float y, float z, float q[4], float approach_x, float approach_y, float approach_z, uint64_t time_usec',
  EXTENDED_SYS_STATE: '245: uint8_t vtol_state, uint8_t landed_state',
  STATUSTEXT: '253: uint8_t severity, chunk text[50], uint16_t id, uint8_t chunk_seq',
  CAMERA_INFORMATION:
    '259: uint32_t time_boot_ms, uint32_t firmware_version, float focal_length, float sensor_size_h, float sensor_size_v, uint32_t flags, uint16_t resolution_h, uint16_t resolution_v, uint16_t cam_definition_version, char vendor_name[32], char model_name[32], uint8_t lens_id, char cam_definition_uri[140], uint8_t gimbal_device_id, uint8_t camera_device_id',
  FLIGHT_INFORMATION:
    '264: uint64_t arming_time_utc, uint64_t takeoff_time_utc, uint64_t flight_uuid, uint32_t time_boot_ms, uint32_t landing_time',
  VIDEO_STREAM_INFORMATION:
    '269: float framerate, uint32_t bitrate, uint16_t flags, uint16_t resolution_h, uint16_t resolution_v, uint16_t rotation, uint16_t hfov, uint8_t stream_id, uint8_t count, uint8_t type, char name[32], char uri[160], uint8_t encoding, uint8_t camera_device_id',
  GIMBAL_DEVICE_INFORMATION:
    '283: hex64 uid, uint32_t time_boot_ms, uint32_t firmware_version, uint32_t hardware_version, float roll_min, float roll_max, float pitch_min, float pitch_max, float yaw_min, float yaw_max, uint16_t cap_flags, uint16_t custom_cap_flags, char vendor_name[32], char model_name[32], char custom_name[32], uint8_t gimbal_device_id',
  ORBIT_EXECUTION_STATUS:
    '360: uint64_t time_usec, float radius, int32_t x, int32_t y, float z, uint8_t frame',
  COMPONENT_INFORMATION:
    '395: uint32_t time_boot_ms, uint32_t general_metadata_file_crc, uint32_t peripherals_metadata_file_crc, char general_metadata_uri[100], char peripherals_metadata_uri[100]',
  COMPONENT_INFORMATION_BASIC:
    '396: uint64_t capabilities, uint32_t time_boot_ms, uint32_t time_manufacture_s, char vendor_name[32], char model_name[32], char software_version[24], char hardware_version[24], char serial_number[32]',
  AVAILABLE_MODES:
    '435: uint32_t custom_mode, uint32_t properties, uint8_t number_modes, uint8_t mode_index, uint8_t standard_mode, char mode_name[35]',
} as const;
