#!/usr/bin/python3
"""A media server that follows MediaMTX (api/openapi.yaml, internal/servers/webrtc/http_server.go) and sends real H.264 by webrtcbin of GStreamer.

    webrtc-camera.py API_PORT VIEWER_PORT        prints "ready"; each viewer gets moving bars and noise: a still picture would need none of its 400 kbit/s
"""
import base64
import ctypes
import hashlib
import hmac
import json
import re
import sys
import threading
import time
import urllib.parse
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import gi

gi.require_version('Gst', '1.0')
gi.require_version('GstSdp', '1.0')
gi.require_version('GstWebRTC', '1.0')
from gi.repository import Gst, GstSdp, GstWebRTC  # noqa: E402

Gst.init(None)
paths = {}
ice_servers = []
viewers = {}
HANDSHAKE_S = 10
# Pion: 5 s without a packet is disconnected, 25 s more is failed (pion/ice, agent_config.go).
LOST_S = 30
codec = 'H264'
# A key frame each 2 s: a good camera sends one each second, others each five or ten (AlexxIT/go2rtc#1595).
encoders = {
    'H264': 'x264enc tune=zerolatency speed-preset=ultrafast bitrate=400 key-int-max=40 '
            '! video/x-h264,profile=constrained-baseline ! rtph264pay name=p config-interval=-1 aggregate-mode=zero-latency ',
    'VP8': 'vp8enc deadline=1 cpu-used=8 target-bitrate=400000 keyframe-max-dist=40 ! rtpvp8pay name=p ',
}
# Pion checks with the answer and every 200 ms (pion/ice, agent_config.go). No viewer has the answer at the first check; libnice doubles the pause,
# so that it begins with the second.
CHECK_MS = 200
CHECKS = 8


def kept(taken):
    """The getters of webrtcbin 1.22 give a reference away that they do not have."""
    ctypes.CDLL('libgobject-2.0.so.0').g_object_ref(ctypes.c_void_p(hash(taken)))
    return taken


def trace(what):
    print(json.dumps({'trace': what, 'at_ms': round(time.time() * 1000)}), flush=True)


def turn_server(each):
    """As `turn-server` of webrtcbin; with AUTH_SECRET the login is made as MediaMTX makes it (internal/servers/webrtc/server.go)."""
    user, password = each['username'], each['password']
    if user == 'AUTH_SECRET':
        user = f'{int(time.time()) + 86400}:kit'
        password = base64.b64encode(hmac.new(each['password'].encode(), user.encode(), hashlib.sha1).digest()).decode()
    login = ':'.join(urllib.parse.quote(word, safe='') for word in (user, password))
    return each['url'].replace('turn:', f'turn://{login}@')


def rtp_caps(number):
    return f'application/x-rtp,media=video,encoding-name={codec},payload={number}'


def payload_of(offer):
    """The payload type; of H.264 that of constrained baseline with packetization mode 1. Without level asymmetry webrtcbin wants its very level, which
    Pion does not look at (pion/webrtc, internal/fmtp/h264.go), and answers `inactive` (centricular/gstwebrtc-demos#172)."""
    if codec != 'H264':
        found = re.search(rf'a=rtpmap:(\d+) {codec}/90000', offer)
        return found and found[1]
    for number in re.findall(r'a=rtpmap:(\d+) H264/90000', offer):
        form = re.search(rf'a=fmtp:{number} (.*)', offer)
        if form and 'level-asymmetry-allowed=1' in form[1] and 'packetization-mode=1' in form[1] and re.search(r'profile-level-id=42e01f', form[1], re.I):
            return number
    return None


def drop_key_frame_request(_, info):
    asked = info.get_event().get_structure()
    return Gst.PadProbeReturn.DROP if asked and asked.get_name() == 'GstForceKeyUnit' else Gst.PadProbeReturn.OK


class Viewer:
    """Waits for an offer with its encoder at work, as a server that has the stream; that of GStreamer takes 0.4 s to start."""
    def __init__(self):
        self.id, self.secret, self.codec, self.promises = str(uuid.uuid4()), str(uuid.uuid4()), codec, []
        self.sent, self.packets = 0, 0
        self.pipe = Gst.parse_launch(
            'webrtcbin name=w bundle-policy=max-bundle latency=0 '
            'videotestsrc is-live=true pattern=smpte ! video/x-raw,width=320,height=180,framerate=20/1 '
            f'! {encoders[codec]}! capsfilter name=f caps-change-mode=delayed caps="{rtp_caps(96)}" ! w.')
        self.rtc = self.pipe.get_by_name('w')
        packets = self.pipe.get_by_name('p').get_static_pad('src')
        packets.add_probe(Gst.PadProbeType.BUFFER | Gst.PadProbeType.BUFFER_LIST, self.count)
        # As MediaMTX, which reads what viewers ask for and drops it (internal/protocols/webrtc/outbound_track.go).
        packets.add_probe(Gst.PadProbeType.EVENT_UPSTREAM, drop_key_frame_request)
        self.rtc.connect('notify::connection-state', self.changed)
        self.rtc.connect('notify::ice-connection-state', lambda *_: trace(f"media server ICE {self.rtc.get_property('ice-connection-state').value_nick}"))
        self.pipe.set_state(Gst.State.PLAYING)

    def take(self, path, offer, number):
        trace('media server has the offer')
        self.path = path
        for each in ice_servers:
            if each['url'].startswith('stun:'):
                self.rtc.set_property('stun-server', each['url'].replace('stun:', 'stun://'))
            if each['url'].startswith('turn:'):
                self.rtc.emit('add-turn-server', turn_server(each))
        agent = kept(kept(self.rtc.get_property('ice-agent')).get_property('agent'))
        # Else the answer waits 200 ms for routers, which Pion does not ask.
        agent.set_property('upnp', False)
        agent.set_property('stun-initial-timeout', CHECK_MS)
        agent.set_property('stun-max-retransmissions', CHECKS)
        self.pipe.get_by_name('f').set_property('caps', Gst.Caps.from_string(rtp_caps(number)))
        # Until the caps are there no transceiver fits an offer.
        while not any(caps.get_structure(0).get_value('payload') == int(number) for caps in [self.rtc.sinkpads[0].get_current_caps()] if caps):
            time.sleep(0.005)
        gathered = threading.Event()
        complete = GstWebRTC.WebRTCICEGatheringState.COMPLETE
        self.rtc.connect('notify::ice-gathering-state', lambda *_: self.rtc.get_property('ice-gathering-state') == complete and gathered.set())
        # Without its candidates: libnice gives up after 2 s, and a viewer beyond a satellite takes as long to have the answer.
        _, sdp = GstSdp.SDPMessage.new_from_text(re.sub(r'a=candidate:.*\r\n', '', offer))
        self.ask('set-remote-description', GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.OFFER, sdp))
        # What is in a reply lives as long as the reply.
        reply = self.ask('create-answer', None)
        self.ask('set-local-description', reply.get_value('answer'))
        gathered.wait(5)
        trace('media server answers')
        self.answer = self.rtc.get_property('local-description').sdp.as_text()
        viewers[self.id] = self
        # Names of mDNS cannot be found here.
        self.candidates = [each.strip() for each in re.findall(r'a=(candidate:.*)', offer.split('m=audio')[0]) if '.local' not in each]
        threading.Timer(CHECK_MS / 1000, self.connect).start()
        threading.Timer(HANDSHAKE_S, self.give_up).start()

    def ask(self, name, value):
        promise = Gst.Promise.new()
        # A reply lives as long as its promise.
        self.promises.append(promise)
        self.rtc.emit(name, value, promise)
        promise.wait()
        return promise.get_reply()

    def count(self, _, info):
        # As the ICE transport of Pion counts: SRTP with its tag of 16 bytes (AES-GCM) or 10, without the headers of UDP and IP.
        # A viewer gets the stream from its connection on, from any frame (bluenviron/mediamtx#1209).
        if self.rtc.get_property('connection-state') != GstWebRTC.WebRTCPeerConnectionState.CONNECTED:
            return Gst.PadProbeReturn.DROP
        many = info.get_buffer_list() if info.type & Gst.PadProbeType.BUFFER_LIST else None
        packets = many.length() if many else 1
        self.sent += (many.calculate_size() if many else info.get_buffer().get_size()) + packets * 10
        self.packets += packets
        return Gst.PadProbeReturn.OK

    def key_frame(self):
        request = Gst.Event.new_custom(Gst.EventType.CUSTOM_UPSTREAM, Gst.Structure.new_empty('GstForceKeyUnit'))
        self.pipe.get_by_name('p').get_static_pad('sink').push_event(request)

    def changed(self, *_):
        state = self.rtc.get_property('connection-state')
        trace(f'media server {state.value_nick}')
        ended = (GstWebRTC.WebRTCPeerConnectionState.FAILED, GstWebRTC.WebRTCPeerConnectionState.CLOSED)
        if state in ended:
            threading.Thread(target=self.end).start()
        if state == GstWebRTC.WebRTCPeerConnectionState.CONNECTED:
            self.heard_s = time.monotonic()
            session = self.rtc.get_by_name('rtpbin').emit('get-internal-session', 0)
            session.connect('on-receiving-rtcp', self.heard)
            self.look()

    def heard(self, *_):
        self.heard_s = time.monotonic()

    def look(self):
        if time.monotonic() - self.heard_s > LOST_S:
            self.end()
        elif self.id in viewers:
            threading.Timer(1, self.look).start()

    def connect(self):
        for candidate in self.candidates:
            self.rtc.emit('add-ice-candidate', 0, candidate)

    def give_up(self):
        if self.rtc.get_property('connection-state') != GstWebRTC.WebRTCPeerConnectionState.CONNECTED:
            self.end()

    def end(self):
        if viewers.pop(self.id, None):
            self.pipe.set_state(Gst.State.NULL)


def next_viewer():
    """The one that waits; another takes its place."""
    global spare
    with spare_lock:
        if spare and spare.codec != codec:
            spare.pipe.set_state(Gst.State.NULL)
            spare = None
        taken, spare = spare or Viewer(), None
    threading.Thread(target=refill).start()
    return taken


def refill():
    global spare
    with spare_lock:
        spare = spare or Viewer()


spare, spare_lock = None, threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def body(self):
        return self.rfile.read(int(self.headers.get('content-length') or 0)).decode()

    def reply(self, status, value=None, **headers):
        text = value if isinstance(value, str) else json.dumps(value or {})
        self.send_response(status)
        for name, each in headers.items():
            self.send_header(name.replace('_', '-'), each)
        self.send_header('content-length', str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        if self.path.startswith('/v3/webrtcsessions/list'):
            items = [{'id': each.id, 'path': each.path, 'outboundBytes': each.sent, 'outboundRTPPackets': each.packets, 'outboundRTCPPackets': 0} for each in list(viewers.values())]
            return self.reply(200, {'itemCount': len(items), 'pageCount': 1, 'items': items})
        if self.path == '/v3/config/global/get':
            return self.reply(200, {'webrtcICEServers2': ice_servers})
        known = paths.get(self.path.rsplit('/', 1)[-1])
        return self.reply(200, known) if known else self.reply(404, {'error': 'path configuration not found'})

    def do_PATCH(self):
        ice_servers[:] = json.loads(self.body()).get('webrtcICEServers2', [])
        self.reply(200, {'status': 'ok'})

    def do_DELETE(self):
        self.body()
        found = next((each for each in list(viewers.values()) if self.path.endswith(each.secret)), None)
        if found:
            found.end()
        self.reply(200 if found else 404, {} if found else {'error': 'session not found'})

    def do_POST(self):
        global codec
        body = self.body()
        name = self.path.split('/')[-1]
        # Of the test alone: what the camera is asked for, and what cameras send from now on.
        if self.path == '/keyframe':
            trace('camera is asked for a key frame')
            for each in list(viewers.values()):
                each.key_frame()
            return self.reply(200, {})
        if self.path.startswith('/codec/'):
            codec = name
            return self.reply(200, {})
        if '/webrtcsessions/kick/' in self.path:
            found = viewers.get(name)
            if found:
                found.end()
            return self.reply(200 if found else 404, {})
        if '/config/paths/replace/' in self.path:
            paths[name] = {**json.loads(body), 'name': name}
            return self.reply(200, {'status': 'ok'})
        name = self.path.strip('/').split('/')[0]
        number = payload_of(body)
        if name not in paths:
            return self.reply(404, {'error': f"no stream is available on path '{name}'"})
        if number is None:
            return self.reply(400, {'error': 'codecs not supported by client'})
        viewer = next_viewer()
        viewer.take(name, body, number)
        self.reply(201, viewer.answer, content_type='application/sdp', id=viewer.id, etag='*', location=f'/{name}/whep/{viewer.secret}')


refill()
# GStreamer makes one certificate for all, RSA, with the first of them; that of Pion takes no time.
Gst.ElementFactory.make('dtlsdec').get_property('pem')
for port in sys.argv[1:3]:
    threading.Thread(target=ThreadingHTTPServer(('0.0.0.0', int(port)), Handler).serve_forever).start()
print('ready', flush=True)
